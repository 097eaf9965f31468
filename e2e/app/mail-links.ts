import { eventually } from '../../server/src/testing/harness/waiting.ts'
import type { MtaInbox } from '../../server/src/testing/peers/mta-inbox.ts'

/** The link to a page of the app in the last mail to this address. */
export async function mailedLink(inbox: MtaInbox, email: string, page: string): Promise<string> {
  return eventually(`a mail to ${email} with a link to ${page}`, () => {
    const text = inbox.mails.findLast(({ to }) => to.includes(email))?.plain ?? ''
    return new RegExp(`http\\S+/app/${page}#\\S+`).exec(text)?.[0]
  })
}
