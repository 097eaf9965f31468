-- A provider that cannot be asked to take a mail only once, and that tells by itself what it took (Amazon SES), is
-- called at most once for each mail unless it certainly did not take it. So an attempt is written down before the call,
-- and mail of which nobody knows whether it was taken waits for the provider's word.
--
-- The whole picture of mail.dispatch. One row per recipient while there is something to do, deleted when it is handed
-- over or given up.
--   ready → leased           claimed; a committed lease (worker)
--   leased → (deleted)       sent, or given up (worker)
--   leased → deferred        not now; `due_at` says when (worker)
--   leased → awaiting        it may have been taken, and its provider is not asked twice; for an hour (worker)
--   leased → ready           the lease ran out, and no attempt was written down: whoever had it is gone (worker)
--   leased → awaiting        the lease ran out, and an attempt was written down (worker)
--   awaiting → (deleted)     the provider told that it took it (intake), its answer was read late (worker), or the hour
--                            is over: the mail has failed, and its event says that it may have been sent (worker)
--   awaiting → deferred      its answer was read late, and was no (worker)
--   deferred, scheduled → ready     the time has come (worker)
--   any → (deleted)          the last word about the mail was heard (intake)
-- Nobody claims what is awaiting, so what is awaiting is never sent again. A project that is locked or held has rows
-- like any other; nobody claims them. Whatever becomes ready is due from that moment, so `due_at` of ready rows only
-- ever grows. Of recipients (000008_mail.sql), these come besides:
--   queued → sent            the provider told so before the worker, or in its place (intake)
--   queued → failed          nobody told within the hour (worker)
alter table mail.dispatch drop constraint dispatch_state_check;
alter table mail.dispatch add constraint dispatch_state_check
  check (state in ('ready', 'leased', 'deferred', 'scheduled', 'awaiting'));
create index dispatch_awaiting on mail.dispatch (due_at) where state = 'awaiting';

-- Outcomes of an attempt:
--   begun        written down before the call; the answer was not read, or not yet
--   sent, deferred, refused, unreachable     what the answer said, or that nobody was there to give one
--   unknown      the call was made, and its answer does not tell, or never came
alter table mail.attempts drop constraint attempts_outcome_check;
alter table mail.attempts add constraint attempts_outcome_check
  check (outcome in ('begun', 'sent', 'deferred', 'refused', 'unreachable', 'unknown'));
