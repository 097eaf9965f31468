import type { Overview } from '../../../api/operations.gen.ts'
import { Banner } from '../../../components/banner.tsx'
import { To } from '../../../components/link.tsx'
import { ExactTime } from '../../../components/relative-time.tsx'

/** On every page, until the mode of each policy whose breaker tripped is set. */
export function TrippedBanner({ tripped }: { tripped: Overview['policies_tripped'] }) {
  return tripped.map(({ id, name, tripped_at }) => (
    <Banner
      key={id}
      link={
        <To to="/policies/$id" params={{ id: String(id) }} aria-label={`Review the policy ${name}`}>
          Review the policy
        </To>
      }
    >
      <strong>The breaker of the policy “{name}” tripped</strong> on <ExactTime at={tripped_at} />. The policy
      only records firings.
    </Banner>
  ))
}
