/** The part of a request that signing in uses. */
export interface Browser {
  requestId: string
  cookie: string | undefined
  address: string
  userAgent: string | undefined
}
