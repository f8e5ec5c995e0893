# The viewer, where Dear ImGui is found.
