// What Better Auth takes: an ASCII mailbox at a host name with a dot in it.
const mailbox = /^[a-z0-9_'+.-]+@(?:[a-z0-9][a-z0-9-]*\.)+[a-z]{2,}$/

/** An address under which a person can sign in, as stored (in lower case, as Better Auth compares); else undefined. */
export function signInAddress(text: string): string | undefined {
  const email = text.toLowerCase()
  const isUsable = email.length <= 254 && mailbox.test(email) && !/^\.|\.\.|\.@/.test(email)
  return isUsable ? email : undefined
}
