//! Unit tests of what has atomics, which may also be those of the models.

/// Runs a test under the scheduler that those want.
pub(super) fn scheduled(test: impl Fn() + Send + Sync + 'static) {
    shuttle::check_dfs(test, Some(1));
}
