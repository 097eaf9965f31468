/** Whose page this is, once it is known: told by who asks for it (session.ts), asked by who draws tokens. */
let here: number | undefined

export const whoIsHere = (): number | undefined => here

export function thisIs(id: number): void {
  here = id
}
