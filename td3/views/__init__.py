"""What people look at: the command line and the terminal. Views read events and runs, never the learner."""
