"""What is stored of a call, in plain JSON, and what each way of ending means."""
