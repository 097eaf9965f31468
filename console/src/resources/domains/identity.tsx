import type { Domain } from '../../api/operations.gen.ts'
import { Status } from '../../components/badge.tsx'
import { DescriptionList } from '../../components/description-list.tsx'
import { ExactAndRelativeTime } from '../../components/relative-time.tsx'

export const providers: Record<Domain['mta_provider'], string> = {
  service: 'Shared mail servers',
  ses: 'Amazon SES',
}

/** The domain's registration with its provider. */
export function Identity({ domain }: { domain: Domain }) {
  const { identity } = domain
  return (
    <section aria-label="Identity" style={{ maxWidth: 480 }}>
      <DescriptionList
        items={[
          ['Provider', providers[domain.mta_provider]],
          ['Identity', <Status key="identity" value={identity.state} />],
          ['Active DKIM selector', identity.selector ?? 'managed by the provider'],
          ['Registered', <ExactAndRelativeTime key="registered" at={identity.registered_at} />],
          ['Verified', <ExactAndRelativeTime key="verified" at={domain.verified_at} />],
          ['Added', <ExactAndRelativeTime key="added" at={domain.created_at} />],
        ]}
      />
    </section>
  )
}
