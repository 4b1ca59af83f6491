# Crossings between the clocks of the custom logic. `shef cloud lint` compares them with those that it
# finds in the netlist.
#
# clk_main_a0, the core's clock with the kernel's, and the clock that samples noise come from one
# oscillator, so Vivado times paths between them; to the design they are unrelated. Each path below
# has at most 3.5 ns: less than a period of the fastest clock (266 MHz), so that two bits of a Gray
# counter that change one after another also arrive so, and the words of a FIFO arrive before its
# pointer. Paths that are not below stay timed: one that no form covers fails.
set main_clock [get_clocks -of_objects [get_pins -hierarchical -filter {NAME =~ *u_clocks/u_mmcm/CLKIN1}]]
set core_clock [get_clocks -of_objects [get_pins -hierarchical -filter {NAME =~ *u_clocks/u_core/O}]]
set kernel_clock [get_clocks -of_objects [get_pins -hierarchical -filter {NAME =~ *u_clocks/u_kernel/O}]]
set noise_clock [get_clocks -of_objects [get_pins -hierarchical -filter {NAME =~ *u_noise/u_sample/O}]]

# Synchronisers of one bit (shef_sync), those of the FIFOs' pointers among them.
set_max_delay -datapath_only 3.5 \
  -from [list $main_clock $core_clock $kernel_clock $noise_clock] \
  -to [get_cells -hierarchical -filter {NAME =~ *meta_q_reg}]

# Words of the FIFOs between two clocks (shef_async_fifo). Each is named: a pattern for all of a
# module would also match its FIFOs within one clock, whose hold times must stay checked.
set_max_delay -datapath_only 3.5 \
  -from [get_cells -hierarchical -filter {NAME =~ *u_access/mem_q_reg* || NAME =~ *u_answer/mem_q_reg* || \
    NAME =~ *u_pcim/u_ar/mem_q_reg* || NAME =~ *u_pcim/u_aw/mem_q_reg* || NAME =~ *u_pcim/u_w/mem_q_reg* || \
    NAME =~ *u_pcim/u_r/mem_q_reg* || NAME =~ *u_pcim/u_b/mem_q_reg* || \
    NAME =~ *u_pcis/u_ar/mem_q_reg* || NAME =~ *u_pcis/u_aw/mem_q_reg* || NAME =~ *u_pcis/u_w/mem_q_reg* || \
    NAME =~ *u_pcis/u_r/mem_q_reg* || NAME =~ *u_pcis/u_b/mem_q_reg* || \
    NAME =~ *u_irq/u_vectors/mem_q_reg* || NAME =~ *u_noise/u_bits/mem_q_reg*}] \
  -to [get_cells -hierarchical -filter {NAME =~ *u_access/rd_data_q_reg* || NAME =~ *u_answer/rd_data_q_reg* || \
    NAME =~ *u_pcim/u_ar/rd_data_q_reg* || NAME =~ *u_pcim/u_aw/rd_data_q_reg* || NAME =~ *u_pcim/u_w/rd_data_q_reg* || \
    NAME =~ *u_pcim/u_r/rd_data_q_reg* || NAME =~ *u_pcim/u_b/rd_data_q_reg* || \
    NAME =~ *u_pcis/u_ar/rd_data_q_reg* || NAME =~ *u_pcis/u_aw/rd_data_q_reg* || NAME =~ *u_pcis/u_w/rd_data_q_reg* || \
    NAME =~ *u_pcis/u_r/rd_data_q_reg* || NAME =~ *u_pcis/u_b/rd_data_q_reg* || \
    NAME =~ *u_irq/u_vectors/rd_data_q_reg* || NAME =~ *u_noise/u_bits/rd_data_q_reg*}]

# Resets of a clock domain (shef_reset_sync): asserted without a clock, released by one.
set_false_path -to [get_pins -hierarchical -filter {NAME =~ *stage_q_reg*/CLR || NAME =~ *_rst/rst_q_reg/CLR}]
