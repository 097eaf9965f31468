import { complaintAbout, sampleSending } from '../core/control/domains/lookup-records.ts'
import { type Check, unlessFound, warning } from './check.ts'

/**
 * The sample size. The worker checks every domain once a day and tolerates missing records for three days; this check
 * reads a sample immediately.
 */
const domainsAtMost = 20

export const domainCheck: Check = {
  name: 'domains',
  needs: 'tables',
  async run({ db, dns }) {
    const domains = await db.read((tx) => sampleSending(tx, domainsAtMost))
    const findings = await Promise.all(
      domains.map(async (domain) => {
        const complaint = await complaintAbout(dns, domain)
        if (complaint === null) return undefined
        const { name, project_id, project_name } = domain
        return warning(
          `Mail from ${name} (project ${project_id}, ${project_name}) will fail authentication. ${complaint}`,
          "Ask the owner to publish the domain's DNS records, or check its name servers.",
        )
      }),
    )
    return unlessFound(
      findings,
      domains.length === 0
        ? 'No domain has sent mail through your own MTAs this month.'
        : `DKIM and return path are correct for the domains checked: ${domains.length}.`,
    )
  },
}
