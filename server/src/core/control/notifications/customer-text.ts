// Text in system mail that customers influence. Mail clients turn names, addresses and numbers in a text into links, so a
// customer who chose them could make the operator send links to other people.

// Letters, digits and a few characters that mail clients do not turn into links. Dot, colon, slash and @ are excluded, as
// well as characters that Unicode compatibility normalization maps to one of them.
const linklessName = /^[\p{L}\p{M}\p{Nd} '&+,()_-]{1,60}$/u
// Phones turn longer digit sequences into phone numbers.
const maxDigits = 4

/** The customer chooses the name, so it is shown only if it cannot contain an address, a link or a phone number. */
export function labelOf(noun: 'project' | 'endpoint', id: number, name: string): string {
  const plain = name.normalize('NFKC')
  const isShown = linklessName.test(plain) && (plain.match(/\p{Nd}/gu)?.length ?? 0) <= maxDigits
  return isShown ? `${noun} "${plain}" (number ${id})` : `${noun} number ${id}`
}

/** A domain name or a diagnostic text in a form that mail clients do not turn into links. */
export const linkless = (text: string): string =>
  text
    .normalize('NFKC')
    .replace(/\p{C}+/gu, ' ')
    .replaceAll('://', '[:]//')
    .replaceAll('@', '[at]')
    .replace(/\.(?=\S)/g, '[.]')
