"""From which dump something comes, and what was made of something."""
