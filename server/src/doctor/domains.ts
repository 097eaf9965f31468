import { complaintAbout, sampleSending } from '../core/control/domains/lookup-records.ts'
import { type Check, unlessFound, warning } from './check.ts'

/** The worker looks at every domain once a day, and a record may be missing for three days; here some are looked at now. */
const domainsAtMost = 20

export const domainCheck: Check = {
  name: 'domains',
  needs: 'tables',
  async look({ db, dns }) {
    const domains = await db.read((tx) => sampleSending(tx, domainsAtMost))
    const findings = await Promise.all(
      domains.map(async (domain) => {
        const complaint = await complaintAbout(dns, domain)
        if (complaint === null) return undefined
        return warning(
          `Mail of project ${domain.project_id} from ${domain.name} will not be believed. ${complaint}`,
          `Have its owner publish the records that the domain shows, or look at the name servers of ${domain.name}.`,
        )
      }),
    )
    return unlessFound(
      findings,
      domains.length === 0
        ? 'No domain has sent by MTAs of our own this month.'
        : `DKIM and return path are right, of domains that have sent this month: ${domains.length}.`,
    )
  },
}
