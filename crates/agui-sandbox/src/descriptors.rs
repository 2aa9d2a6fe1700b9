//! Keeps the descriptors of this process from its child processes.

/// Sets close-on-exec on all descriptors but the standard ones. Inherited descriptors would
/// otherwise be open in every child process; the descriptors that this process opens itself already
/// have it.
#[cfg(unix)]
pub fn close_descriptors_on_exec() {
    close_fds::set_fds_cloexec_threadsafe(3, &[]);
}

#[cfg(not(unix))]
pub fn close_descriptors_on_exec() {}
