"""What running kernels needs from the machine: threads, memory, forks, interrupts."""
