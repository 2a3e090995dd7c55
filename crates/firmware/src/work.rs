//! Every kind of work that a firmware core is charged for. A kind without a price does not run: a processor file must name each.

macro_rules! work {
    ($($(#[$doc:meta])* $name:ident $key:literal;)*) => {
        /// A kind of work.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Work { $($(#[$doc])* $name,)* }

        impl Work {
            /// The key of each kind in a processor file, in order.
            pub const KEYS: &'static [&'static str] = &[$($key,)*];
        }
    };
}

work! {
    /// NVMQ: react to a doorbell and start the copy of a batch into the SQ buffer.
    FetchBatch "nvmq_fetch_batch";
    /// NVMQ: look at one fetched entry, deal its tickets, hand it on.
    DealEntry "nvmq_deal_entry";
    /// NVMQ: take an entry from the SQ buffer and parse the command.
    ParseCommand "nvmq_parse_command";
    /// NVMQ: resolve the PRP entries of one page.
    ResolvePrp "nvmq_resolve_prp";
    /// NVMQ: start the DMA of one page.
    StartDma "nvmq_start_dma";
    /// NVMQ: look at the buffer's tag of a page.
    LookUpTag "nvmq_look_up_tag";
    /// NVMQ, CACHE: choose the TRANS thread of a page by the XOR of its bit groups.
    FoldAddress "nvmq_fold_address";
    /// NVMQ: keep a command in order with others of a range that its thread owns.
    OrderInRange "nvmq_order_in_range";
    /// NVMQ: compose a completion in the CQ buffer.
    PostCompletion "nvmq_post_completion";
    /// NVMQ: compare two pages in buffer memory.
    ComparePage "nvmq_compare_page";
    /// ILOCK: go down one level of the tree of ranges.
    SearchLock "ilock_search";
    /// ILOCK: put a node into the tree.
    InsertLock "ilock_insert";
    /// ILOCK: take a node out of the tree.
    RemoveLock "ilock_remove";
    /// CACHE: find a page's entry.
    FindEntry "cache_find_entry";
    /// CACHE: read or exchange the frame of an entry.
    ServeEntry "cache_serve_entry";
    /// CACHE: send an entry's page to flash.
    EvictEntry "cache_evict_entry";
    /// TRANS: read a map entry.
    LookUpMap "trans_look_up_map";
    /// TRANS: choose the next free page of a write point.
    AllocatePage "trans_allocate_page";
    /// TRANS: write a map entry, the counts that go with it, and the out-of-band entry.
    UpdateMap "trans_update_map";
    /// TRANS: open a free group of blocks.
    OpenGroup "trans_open_group";
    /// FCMD: split a page number and put the request into its die's line.
    SplitAddress "fcmd_split_address";
    /// FCMD: compose one transaction of pre-dma, mem-op and post-dma.
    ComposeTransaction "fcmd_compose_transaction";
    /// FCMD: see a transaction's end and free its resources.
    CompleteTransaction "fcmd_complete_transaction";
    /// BGC: choose a victim.
    PickVictim "bgc_pick_victim";
    /// BGC: begin or end the move of one page. What is done to it between has prices of its own.
    MovePage "bgc_move_page";
    /// LOG: collect one page of metadata.
    CollectMetadata "log_collect_metadata";
    /// LOG: begin or commit a checkpoint.
    SealCheckpoint "log_seal_checkpoint";
}
