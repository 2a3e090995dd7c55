//! The experiments and placements that have a name: files of the repository, embedded. A new one is a file and a line here.

use rig::config::Named;

macro_rules! named {
    ($folder:literal: $($name:literal)*) => {
        &[$(Named {
            name: $name,
            file: concat!($folder, "/", $name, ".toml"),
            text: include_str!(concat!("../../../", $folder, "/", $name, ".toml")),
        }),*]
    };
}

/// Experiments, in the order of the papers.
pub const EXPERIMENTS: &[Named] = named! { "experiments":
    "fig3a" "fig3b" "fig11" "fig12" "fig13" "fig14a" "fig14b" "fig14c" "fig15" "fig16a" "fig16b" "fig17a" "fig17b"
    "pipessd-fig3a" "pipessd-fig3b" "pipessd-fig6" "pipessd-table2" "pipessd-fig7" "backbone" "alignment" "footprint"
    "outstanding" "stability" "write-amplification" "trim" "page-size" "wear" "pace"
};

/// Threads of each group by architecture, processor and cores.
pub const PLACEMENTS: &[Named] = named! { "placements":
    "deepflash" "deepflash-many-cores" "deepflash-out-of-order-1.2ghz" "deepflash-out-of-order-2.4ghz"
};
