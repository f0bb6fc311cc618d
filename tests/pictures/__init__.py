"""Pictures for the README, taken from real sessions in a real terminal (tmux)."""
