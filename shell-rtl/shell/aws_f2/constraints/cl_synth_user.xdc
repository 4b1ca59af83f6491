# Constraints of the custom logic alone, in synthesis: names of its clocks.
#
# Vivado derives the clocks behind an MMCM and a divider; these commands only name them. clk_main_a0
# itself is AWS's (cl_clocks_aws.xdc).
create_generated_clock -name core_clk [get_pins -hierarchical -filter {NAME =~ *u_clocks/u_mmcm/CLKOUT0}]
create_generated_clock -name noise_clk [get_pins -hierarchical -filter {NAME =~ *u_noise/u_mmcm/CLKOUT0}]
