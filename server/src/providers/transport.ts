/** One message for one recipient, composed, signed and ready to be sent. */
export interface Mail {
  /** `from` can be empty, for mail that must not cause a bounce (RFC 5321 §4.5.5). */
  envelope: { from: string; to: string }
  /** RFC 3461: the envelope id that delivery reports about this message contain. */
  dsn: { envid: string; notifySuccess?: false }
  raw: Buffer
  /**
   * The header contains an address that is not ASCII (RFC 6531); envelope addresses are checked separately.
   */
  needsUtf8: boolean
}

export type Handover =
  | { kind: 'sent'; host: string; queueId: string | null; reply: string }
  /**
   * `status` is the enhanced status code (RFC 3463). If there is no host, the message was rejected before any
   * host was contacted.
   */
  | { kind: 'refused'; isPermanent: boolean; status: string | null; host: string | null; reply: string }
  /** `mayBeSent`: the connection was lost during or after the transfer of the mail data. */
  | { kind: 'unreachable'; host: string | null; detail: string; mayBeSent: boolean }
  /**
   * Only returned by an `atMostOnce` transport, which may have accepted the message and, if so, will report
   * on it.
   */
  | { kind: 'unknown'; host: string; detail: string }

/** A provider to which mail is submitted. */
export interface Transport {
  /** The provider currently accepts no mail; `send` returns without an attempt until this is false. */
  readonly isUnavailable: boolean
  /**
   * For a transport without deduplication that reports on accepted mail: an attempt is recorded before `send`
   * is called, and a message that the transport may have accepted is never sent again. `withinSeconds` is the
   * maximum duration of `send`.
   */
  readonly atMostOnce?: { withinSeconds: number }
  /** How many messages can currently be sent concurrently; undefined for no limit. */
  readonly capacity?: number
  /** Never rejects, and completes within the transport's timeout. */
  send(mail: Mail): Promise<Handover>
}
