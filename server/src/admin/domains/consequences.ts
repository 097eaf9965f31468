import { type DomainRow, domainUsers, otherHolder } from '../../core/control/domains/domains.ts'
import type { ReadTx } from '../../platform/db/db.ts'

/** What follows from a new identity of a domain, in sentences for whoever is about to make it. */
export const registrationEffect = ({ name, mta_provider }: DomainRow): string =>
  mta_provider === 'ses'
    ? `An identity for ${name} is registered with Amazon SES after the commit; its DKIM records are known then.`
    : `An identity for ${name} with a new DKIM key is made; mail is signed here.`

const remarks: Partial<Record<string, string>> = {
  mx: ', only if the domain is to receive mail',
  dmarc: ', advised',
}

/** Values and selectors are made at random when it is really done, so a preview cannot tell them. */
export const recordsToPublish = ({ dns_records }: Pick<DomainRow, 'dns_records'>): string[] =>
  dns_records.map(({ purpose, type, name }) => {
    const shown = purpose === 'dkim' ? name.replace(/^[^.]+/, '<selector>') : name
    return `Record to publish: ${type} ${shown} (${purpose}${remarks[purpose] ?? ''}).`
  })

export async function claimWarnings(tx: ReadTx, { name, project_id }: DomainRow): Promise<string[]> {
  const holder = await otherHolder(tx, name, project_id)
  return holder
    ? [
        `Project ${holder.project_id} holds ${name} as verified: it cannot become verified here while that is so.`,
      ]
    : []
}

export async function boundKeyWarnings(tx: ReadTx, domain: DomainRow): Promise<string[]> {
  const { keys } = await domainUsers(tx, domain, 11)
  if (keys.length === 0) return []
  const named = keys.slice(0, 10).join(', ') + (keys.length > 10 ? ' and more' : '')
  return [`API keys bound to this domain send nothing until it is verified: ${named}.`]
}
