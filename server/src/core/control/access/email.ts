// The addresses that Better Auth accepts: an ASCII mailbox at a host name that contains a dot.
const mailbox = /^[a-z0-9_'+.-]+@(?:[a-z0-9][a-z0-9-]*\.)+[a-z]{2,}$/

/**
 * The stored form of the address (lower case, as Better Auth compares), or undefined if the address cannot be used to sign
 * in.
 */
export function signInAddress(text: string): string | undefined {
  const email = text.toLowerCase()
  const isUsable = email.length <= 254 && mailbox.test(email) && !/^\.|\.\.|\.@/.test(email)
  return isUsable ? email : undefined
}
