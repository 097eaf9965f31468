/** One mail for one recipient, composed and signed, ready to be handed over. */
export interface Mail {
  /** `from` may be empty, for mail that causes no bounce (RFC 5321 §4.5.5). */
  envelope: { from: string; to: string }
  /** RFC 3461: the envelope id that delivery reports about this mail contain. */
  dsn: { envid: string; notifySuccess?: false }
  raw: Buffer
  /** The header contains an address that is not ASCII (RFC 6531); envelope addresses are checked separately. */
  needsUtf8: boolean
}

export type Handover =
  | { kind: 'sent'; host: string; queueId: string | null; reply: string }
  /** `status` is the enhanced status code (RFC 3463). Without a host: refused before any host was contacted. */
  | { kind: 'refused'; isPermanent: boolean; status: string | null; host: string | null; reply: string }
  /** `mayBeSent`: the connection was lost while, or after, the mail data was transferred. */
  | { kind: 'unreachable'; host: string | null; detail: string; mayBeSent: boolean }
  /** Only from an `atMostOnce` transport: it may have accepted the mail, and reports on it if it has. */
  | { kind: 'unknown'; host: string; detail: string }

/** A provider to which mail is handed over. */
export interface Transport {
  /** The provider accepts no mail now; `send` returns without an attempt until this is false. */
  readonly isUnavailable: boolean
  /**
   * For a transport without deduplication that reports on accepted mail: an attempt is recorded before `send` is called,
   * and a mail that it may have accepted is never handed over again. The maximum duration of `send`.
   */
  readonly atMostOnce?: { withinSeconds: number }
  /** How many mails can be handed over concurrently at the moment; undefined: no limit. */
  readonly capacity?: number
  /** Never rejects, and ends within the time limit of the transport. */
  send(mail: Mail): Promise<Handover>
}
