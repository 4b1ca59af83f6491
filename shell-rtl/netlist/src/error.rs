//! Errors that keep the lint from an answer.

use std::path::PathBuf;

shef_proto::coded! {
    /// Why a custom logic cannot be checked.
    #[derive(Debug, thiserror::Error)]
    #[non_exhaustive]
    pub enum Error {
        /// No header of the ports.
        #[error("{}: no {HEADER} in it", dir.display())]
        NoHeader {
            /// The folder of the HDK.
            dir: PathBuf,
        } = "SHEF-NET-001": "the folder of the HDK has no list of ports",
            "Name the folder of a clone of aws-fpga, branch f2, or its folder hdk: the list is in \
             hdk/common/shell_stable/design/interfaces/cl_ports.vh. A clone without symbolic links (core.symlinks=false) lacks it.",
        /// The header of the ports is not SystemVerilog.
        #[error("{}: {reason}", path.display())]
        Header {
            /// The header.
            path: PathBuf,
            /// The front end's or the system's message.
            reason: String,
        } = "SHEF-NET-002": "the HDK's list of ports cannot be read",
            "The file is text of SystemVerilog: fetch the HDK anew if it is damaged. A newer HDK may need a newer version of this program.",
        /// No custom logic.
        #[error("{}: {reason}", path.display())]
        Folder {
            /// The folder or file.
            path: PathBuf,
            /// What is missing, or the system's message.
            reason: String,
        } = "SHEF-NET-003": "the folder has no custom logic that can be read",
            "Name a folder with the sources of one custom logic, or with a folder `design` that has them; the top module has the \
             folder's name. `shef cloud new` makes one.",
        /// A module without a source.
        #[error("{place}: no source for the module {module}")]
        Unknown {
            /// File and line of an instance.
            place: String,
            /// The module.
            module: String,
        } = "SHEF-NET-005": "an instance of a module without a source",
            "Add the module, or an empty one with its ports if it is a vendor's block. AWS_CLK_GEN is not for a Security Kernel: the \
             instance sets its clocks. The processor is in the folder of `shef cloud new`; in this repository `cargo xtask setup` \
             fetches it.",
        /// The sources.
        #[error(transparent)]
        Project(#[from] shef_project::Error) => (error) error.code(),
        /// The front end's output.
        #[error("yosys wrote no netlist that this version reads")]
        Netlist = "SHEF-NET-004": "the netlist of yosys has another format",
            "`cargo xtask setup` fetches the version of yosys that this program reads; unset SHEF_YOSYS to use it.",
    }
    also {
        "SHEF-NET-101": "a port differs from the shell's",
            "The ports of the top module are the shell's, with its names, directions and widths: include the header cl_ports.vh of the \
             HDK in the module's port list instead of writing ports by hand. Another version of the HDK may have other ports.",
        "SHEF-NET-102": "an output has no driver, or a net has two",
            "Give each output of the top module one driver: a constant if the interface is unused, an endpoint that answers where the \
             table of ports demands one. Remove one of two drivers.",
        "SHEF-NET-103": "an input of the shell is driven by the custom logic",
            "Inputs of the top module belong to the shell: remove the assignment, or connect the pin of the instance to another net.",
        "SHEF-NET-104": "a net without a driver is read",
            "Drive the net, or remove its reader: Vivado makes it a constant 0.",
        "SHEF-NET-105": "a handshake that never answers",
            "The shell waits for an answer, marks the interface as dead after 8 microseconds, and the image must be loaded again: \
             answer each access of OCL, SDA and PCIS, also in an unused interface, and follow sh_cl_flr_assert with cl_sh_flr_done. A request \
             of PCIM or an interrupt ends.",
        "SHEF-NET-106": "memory is not connected through sh_ddr",
            "The shell trains and watches the memory through sh_ddr: instantiate it once, with DDR_PRESENT 0 if it is unused, and \
             connect its pins and its statistics bus to the ports of the top module, and its clocks and resets.",
        "SHEF-NET-107": "AWS refuses images with this cell",
            "create-fpga-image ends with UNSUPPORTED_DESIGN_LOGIC: remove the instance, also from vendors' IP and generate blocks.",
        "SHEF-NET-108": "a clock that the instance can change, or that logic makes",
            "Make clocks from clk_main_a0 or clk_hbm_ref by an MMCM or PLL with its dynamic ports (DCLK, DEN, DWE, DADDR, DI, PSCLK, PSEN) at \
             constants and RST and PWRDWN from a register of clk_main_a0, by buffers with CE and CLR at constants, and without AWS_CLK_GEN: \
             the host of the instance could otherwise clock the Security Kernel.",
        "SHEF-NET-109": "a loop of logic",
            "AWS refuses images with a combinational loop (LUTLP-1): put a register into it.",
        "SHEF-NET-110": "a latch",
            "Assign the variable on every path of its process, or use a clocked process.",
        "SHEF-NET-111": "an id that AWS refuses or its scripts spoil",
            "cl_sh_id0 and cl_sh_id1 are constants. With vendor 1d0f, the device is F000 to F0FF. No id begins with 2 or 3 as \
             32'hXXXXXXXX: the script that writes the manifest strips these digits.",
        "SHEF-NET-112": "a path between two clocks without a safe form",
            "Pass one bit through shef_sync, a value through shef_async_fifo, a reset through shef_reset_sync. A value that is constant \
             while it is read has (* shef_cdc = \"static\" *) at its register; independent bits of one register have \"flags\".",
        "SHEF-NET-113": "a crossing without a constraint",
            "Add set_max_delay -datapath_only from the first register to the second one in cl_timing_user.xdc; a single bit may have \
             set_false_path. set_clock_groups and set_false_path remove the bound that a FIFO needs, and it is at most 3.75 ns.",
        "SHEF-NET-114": "a constraint that matches nothing, or that the lint does not follow",
            "Vivado only warns. Compare the pattern with the names in the sources: a register has the suffix _reg, -hierarchical \
             compares names without their hierarchy, and in AWS's design the custom logic is below WRAPPER/CL. An exception is between two \
             clocks, by -from and -to; other commands, options and properties could change timing unseen.",
        "SHEF-NET-115": "a name that AWS's constraints take for theirs",
            "cl_ddr_timing_aws.xdc removes the timing of every register with ram_reg or rd_do_reg in its name: rename it.",
        "SHEF-NET-116": "the custom logic is too large",
            "See `shef shield estimate` for the size of a Shield; S-boxes in block RAM ([synthesis] sbox = \"ram\") save a third.",
        "SHEF-NET-117": "a file or folder that AWS's build does not take as it is",
            "encrypt.tcl takes the files of one flat folder and leaves .svh plain; it copies no memory files, and a source reads and runs \
             nothing outside of the design. The top module has the folder's name.",
        "SHEF-NET-118": "the HBM IP is not connected as the shell needs it",
            "AWS refuses an image with cl_hbm whose monitor the shell does not see: connect the APB_n_*_MON pins of each stack to the ports \
             hbm_apb_*_n, MON_APB_n_PRESET_N to hbm_apb_preset_n_n, HBM_REF_CLK_n and APB_n_PCLK to clk_hbm_ref, and give each AXI port a clock, \
             each used one and APB_n_PRESET_N a reset that ends.",
    }
}

/// The header of the ports.
pub(crate) const HEADER: &str = "cl_ports.vh";

impl shef_proto::fault::Coded for Error {
    fn code(&self) -> &str {
        Self::code(self)
    }
}
