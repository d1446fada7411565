//! The only crate that makes system calls.
//!
//! Every wrapper refuses with an [`Error`] that names the call, its argument and the remedy. Nothing here
//! decides anything about scheduling; that is `sched`'s.
#![allow(unsafe_code)]

pub mod affinity;
pub mod bpf;
pub mod clock;
pub mod cpu_list;
pub mod crash;
pub mod deadline;
pub mod descriptor_passing;
pub mod direct_file;
pub mod direct_read;
pub mod dma_latency;
mod error;
pub mod event_format;
mod exact_exec;
pub mod fixed_priority;
pub mod forked;
pub mod futex;
pub mod guardian;
pub mod held_program;
pub mod hold;
pub mod idle_latency;
pub mod interrupt_counts;
pub mod job_abi;
pub mod kernel_fs;
pub mod kernel_trace;
pub mod library;
pub mod loaded;
pub mod machine;
pub mod membarrier;
pub mod memory;
pub mod memory_limit;
pub mod network;
pub mod perf_event;
pub mod perf_ring;
pub mod probe;
pub mod process;
pub mod process_memory;
pub mod ptrace;
pub mod rights;
pub mod shared_memory;
pub mod shared_words;
pub mod signal;
pub mod single_step;
pub mod stack_thread;
pub mod start_state;
pub mod status;
pub mod steal;
pub mod syscall_count;
pub mod task_clock;
pub mod text;
pub mod thread;
pub mod thread_facts;
pub mod usage;
pub mod waiting_call;

pub use error::{Error, UNWRITABLE, errno_name};
