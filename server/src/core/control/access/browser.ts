/** The parts of a request that sign-in uses. */
export interface Browser {
  requestId: string
  cookie: string | undefined
  address: string
  userAgent: string | undefined
}
