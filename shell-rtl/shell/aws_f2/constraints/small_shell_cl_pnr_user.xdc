# Placement of the custom logic: none of ours. The FIFOs at each interface and the stages between
# them leave the placer free to cross a die; the part of the card that a custom logic has is AWS's.
