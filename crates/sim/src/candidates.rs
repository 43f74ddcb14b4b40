//! The states that a power cut may leave.

/// Oldest first, never empty. The last is the one that readers of the running
/// database see, unless a commit's outcome is unknown.
#[derive(Debug, Clone)]
pub struct Candidates<S>(Vec<S>);

impl<S: Default> Default for Candidates<S> {
    fn default() -> Self {
        Self(vec![S::default()])
    }
}

impl<S> Candidates<S> {
    /// All of them, oldest first.
    pub fn iter(&self) -> std::slice::Iter<'_, S> {
        self.0.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> std::slice::IterMut<'_, S> {
        self.0.iter_mut()
    }

    /// The state with everything in it.
    ///
    /// # Panics
    /// Never: there is always one.
    pub fn newest(&self) -> &S {
        self.0.last().expect("there is always one")
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// It is this one, as somebody has seen.
    pub(crate) fn settle_on(&mut self, state: S) {
        self.0 = vec![state];
    }

    /// A commit to this state is under way.
    pub(crate) fn under_way(&mut self, state: S) {
        self.0.push(state);
    }

    /// The commit that was under way led to `state` and was acknowledged:
    /// durable, or only with the operating system.
    pub(crate) fn acknowledge(&mut self, state: S, durable: bool) {
        if durable {
            self.0.clear();
        } else {
            self.0.pop();
        }
        self.0.push(state);
    }

    /// What was under way had no effect, if anything was.
    pub(crate) fn take_back(&mut self, visible: &S)
    where
        S: PartialEq,
    {
        if self.newest() != visible {
            self.0.pop();
        }
        assert!(
            self.0.last() == Some(visible),
            "what failed had an effect nevertheless"
        );
    }

    /// The states older than the newest `kept` are ruled out.
    pub(crate) fn keep(&mut self, kept: usize) {
        let ruled_out = self.0.len().saturating_sub(kept.max(1));
        self.0.drain(..ruled_out);
    }
}
