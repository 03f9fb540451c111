"""What the plugins of documentation generators share: collect pages during a build, index them after a clean one."""
