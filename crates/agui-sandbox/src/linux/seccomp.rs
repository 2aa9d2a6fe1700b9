//! The system calls that commands cannot make: a seccomp filter, which bubblewrap loads before it starts a command.
//!
//! A blocked call fails with `ENOSYS`, as on a kernel without it, so programs use the calls that they have for older
//! kernels. Calls of other architectures kill the process.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Write as _},
    os::fd::AsRawFd as _,
};

use rustix::fs::{MemfdFlags, memfd_create};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, sock_filter,
};

/// The mechanism that bounds the memory of commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MemoryBound {
    Cgroup,
    /// The server watches the memory of processes, so commands must not have memory that belongs to no process.
    Watch,
}

/// Namespaces and mounts, other processes, kernel interfaces with many past vulnerabilities, and calls that need
/// root. `clone3` is blocked because a filter cannot read its flags; `libc` then uses `clone`.
const BLOCKED: [i64; 41] = [
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_bpf,
    libc::SYS_chroot,
    libc::SYS_clone3,
    libc::SYS_delete_module,
    libc::SYS_finit_module,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_init_module,
    libc::SYS_io_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_kcmp,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_perf_event_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pivot_root,
    libc::SYS_process_madvise,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    libc::SYS_quotactl,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_setns,
    libc::SYS_swapon,
    libc::SYS_syslog,
    libc::SYS_umount2,
    libc::SYS_unshare,
    libc::SYS_userfaultfd,
];
/// Calls that take memory of no process, or an unknown amount. Blocked unless a cgroup bounds it.
/// `socketpair` is the only call for sockets that remains, because a pair holds at most its two
/// send buffers.
const UNACCOUNTED_MEMORY: [i64; 8] = [
    libc::SYS_memfd_create,
    libc::SYS_memfd_secret,
    libc::SYS_mq_open,
    libc::SYS_msgget,
    libc::SYS_semget,
    libc::SYS_shmget,
    libc::SYS_socket,
    libc::SYS_vmsplice,
];
/// The flags of `clone` that create namespaces.
const NAMESPACE_FLAGS: [i32; 7] = [
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWUTS,
];
const MAP_TYPE: i32 = 0x0f;
/// Calls from this number on belong to the x32 architecture, which has the architecture number of
/// x86_64.
const FIRST_X32_CALL: u32 = 0x4000_0000;
const SECCOMP_RET_ERRNO: u32 = 0x0005_0000;
/// `BPF_LD | BPF_W | BPF_ABS`
const LOAD_WORD: u16 = 0x20;
/// `BPF_JMP | BPF_JGE | BPF_K`
const JUMP_IF_GREATER_OR_EQUAL: u16 = 0x35;
/// `BPF_RET | BPF_K`
const RETURN: u16 = 0x06;

/// A file without a name, as bubblewrap reads it.
#[derive(Debug)]
pub(super) struct NamelessFile(File);

impl NamelessFile {
    pub(super) fn new(bytes: &[u8]) -> io::Result<Self> {
        let mut file = File::from(memfd_create("agui-sandbox", MemfdFlags::CLOEXEC)?);
        file.write_all(bytes).map(|()| Self(file))
    }

    pub(super) fn from_filter(bound: MemoryBound) -> Result<Self, String> {
        let program = program(bound)
            .map_err(|error| format!("the filter of system calls cannot be compiled: {error}"))?;
        let bytes: Vec<u8> = program.iter().flat_map(encode).collect();
        Self::new(&bytes)
            .map_err(|error| format!("the filter of system calls cannot be written: {error}"))
    }

    /// Returns a path by which child processes open the file.
    pub(super) fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }
}

fn program(bound: MemoryBound) -> Result<BpfProgram, seccompiler::BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        BLOCKED.into_iter().map(|call| (call, Vec::new())).collect();
    let creates = NAMESPACE_FLAGS.into_iter().map(|flag| has_bits(0, flag, flag));
    rules.insert(libc::SYS_clone, creates.collect::<Result<_, _>>()?);
    if bound == MemoryBound::Watch {
        rules.extend(UNACCOUNTED_MEMORY.into_iter().map(|call| (call, Vec::new())));
        // The pages of a shared anonymous mapping stay when a process unmaps all but one of them.
        let shared =
            has_bits(3, MAP_TYPE | libc::MAP_ANONYMOUS, libc::MAP_SHARED | libc::MAP_ANONYMOUS)?;
        rules.insert(libc::SYS_mmap, vec![shared]);
        rules.insert(libc::SYS_setsockopt, vec![has_bits(2, !0, libc::SO_SNDBUF)?]);
    }
    let block = SeccompAction::Errno(libc::ENOSYS.cast_unsigned());
    let filter =
        SeccompFilter::new(rules, SeccompAction::Allow, block, std::env::consts::ARCH.try_into()?)?;
    let mut program = vec![
        sock_filter { code: LOAD_WORD, jt: 0, jf: 0, k: 0 },
        sock_filter { code: JUMP_IF_GREATER_OR_EQUAL, jt: 0, jf: 1, k: FIRST_X32_CALL },
        sock_filter {
            code: RETURN,
            jt: 0,
            jf: 0,
            k: SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned(),
        },
    ];
    program.extend(BpfProgram::try_from(filter)?);
    Ok(program)
}

/// Returns a rule for calls whose argument `index` has the bits `value` in `mask`.
fn has_bits(index: u8, mask: i32, value: i32) -> Result<SeccompRule, seccompiler::BackendError> {
    let compare = SeccompCmpOp::MaskedEq(mask.cast_unsigned().into());
    let value = value.cast_unsigned().into();
    SeccompRule::new(vec![SeccompCondition::new(index, SeccompCmpArgLen::Dword, compare, value)?])
}

fn encode(instruction: &sock_filter) -> [u8; 8] {
    let ([a, b], [c, d, e, f]) = (instruction.code.to_ne_bytes(), instruction.k.to_ne_bytes());
    [a, b, instruction.jt, instruction.jf, c, d, e, f]
}
