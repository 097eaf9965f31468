/** One shape that an administrative mutation can take. */
export interface Scenario {
  /** What the request does. */
  what: string
  needsReason?: true
  changesNothing?: true
  /** Makes what the request is about; each call is about something new. */
  prepare(): Promise<MutationRequest>
}

/** The path is below /v1/admin; the body is without a reason. */
export interface MutationRequest {
  path: string
  body: Record<string, unknown>
}
