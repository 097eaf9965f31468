/** The id of the user whose page this is, once it is known: session.ts sets it, token.ts compares tokens with it. */
let userId: number | undefined

export const currentUserId = (): number | undefined => userId

export function setCurrentUserId(id: number): void {
  userId = id
}
