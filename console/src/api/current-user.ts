/** The current user's id, once known. session.ts sets it, and token.ts compares tokens with it. */
let userId: number | undefined

export const currentUserId = (): number | undefined => userId

export function setCurrentUserId(id: number): void {
  userId = id
}
