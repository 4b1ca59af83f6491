set clocks [list [get_clocks -of_objects [get_pins -hier -filter {NAME =~ *u_mmcm/CLKIN1}]] \
  [get_clocks -of_objects [get_pins -hier -filter {NAME =~ *u_clocks/u_core/O}]]]
set_max_delay -datapath_only 3.5 -from $clocks -to [get_cells -hier -filter {NAME =~ *meta_q_reg}]
set_max_delay -datapath_only 3.5 \
  -from [get_cells -hier -filter {NAME =~ *u_there/mem_q_reg* || NAME =~ *u_back/mem_q_reg*}] \
  -to [get_cells -hier -filter {NAME =~ *u_there/rd_data_q_reg* || NAME =~ *u_back/rd_data_q_reg*}]
set_max_delay -datapath_only 3.5 -from [get_cells setting_q_reg*] -to [get_cells u_core/setting_q_reg*]
set_false_path -to [get_pins -hier -filter {NAME =~ *_rst/*_q_reg*/CLR}]
