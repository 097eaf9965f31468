/** One mail for one recipient, composed and signed, on its way out. */
export interface Mail {
  /** `from` may be empty: mail that nobody is told about when it fails (RFC 5321 §4.5.5). */
  envelope: { from: string; to: string }
  /** RFC 3461: what a notification about this mail will name. */
  dsn: { envid: string; isSuccessTold?: false }
  raw: Buffer
  /** An address in its header is not ASCII (RFC 6531); those in the envelope speak for themselves. */
  needsUtf8: boolean
}

export type Handover =
  | { kind: 'sent'; host: string; queueId: string | null; reply: string }
  /** `status` is the enhanced one (RFC 3463). No host: we would not even ask. */
  | { kind: 'refused'; isLasting: boolean; status: string | null; host: string | null; reply: string }
  /** `mayBeSent`: the mail was under way, or wholly handed over, when the other side was lost. */
  | { kind: 'unreachable'; host: string | null; detail: string; mayBeSent: boolean }
  /** From a carrier that is `atMostOnce` alone: it may have the mail, and will tell by itself if it has. */
  | { kind: 'unknown'; host: string; detail: string }

/** A provider that takes mail. */
export interface Transport {
  /** Nobody is there to take mail now; until this is false, `send` answers without trying. */
  readonly isOpen: boolean
  /**
   * Of a carrier that would take the same mail twice, and that reports what it took: an attempt is written down before
   * `send` is called, and a mail that it may have is never given to it again. How long `send` takes at most.
   */
  readonly atMostOnce?: { withinSeconds: number }
  /** How many mails it can have at once, at this moment; as many as anybody likes, if it does not say. */
  readonly places?: number
  /** Never rejects, and ends within the time that the carrier was given. */
  send(mail: Mail): Promise<Handover>
}
