import { type DomainRow, domainUsers, otherHolder } from '../../core/control/domains/domains.ts'
import type { ReadTx } from '../../platform/db/db.ts'

/** Effects and warnings of registering a new identity, as sentences for the preview. */
export const registrationEffect = ({ name, mta_provider }: DomainRow): string =>
  mta_provider === 'ses'
    ? `An identity for ${name} is registered with Amazon SES after the change is saved. Its DKIM records are available afterwards.`
    : `An identity for ${name} with a new DKIM key is created. Postern signs its mail.`

const remarks: Partial<Record<string, string>> = {
  mx: ', only for inbound mail',
  dmarc: ', recommended',
}

/** Values and selectors are random and generated when the change is made, so a preview does not show them. */
export const recordsToPublish = ({ dns_records }: Pick<DomainRow, 'dns_records'>): string[] =>
  dns_records.map(({ purpose, type, name }) => {
    const shown = purpose === 'dkim' ? name.replace(/^[^.]+/, '<selector>') : name
    return `Record to publish: ${type} ${shown} (${purpose}${remarks[purpose] ?? ''}).`
  })

export async function claimWarnings(tx: ReadTx, { name, project_id }: DomainRow): Promise<string[]> {
  const holder = await otherHolder(tx, name, project_id)
  return holder
    ? [
        `${name} is verified in project ${holder.project_id} and cannot be verified in another project at the same time.`,
      ]
    : []
}

export async function boundKeyWarnings(tx: ReadTx, domain: DomainRow): Promise<string[]> {
  const { keys } = await domainUsers(tx, domain, 11)
  if (keys.length === 0) return []
  const named = keys.slice(0, 10).join(', ') + (keys.length > 10 ? ' and more' : '')
  return [`API keys bound to this domain cannot send until it is verified: ${named}.`]
}
