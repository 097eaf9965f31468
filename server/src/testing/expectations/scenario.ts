/** One kind of effect of an administrative mutation. */
export interface Scenario {
  /** Completes the sentence “a request that …”. */
  what: string
  needsReason?: true
  changesNothing?: true
  /** Creates the resources that the request needs. Every call creates new ones. */
  prepare(): Promise<MutationRequest>
}

/** The path below /v1/admin, and the body without a reason. */
export interface MutationRequest {
  path: string
  body: Record<string, unknown>
}
