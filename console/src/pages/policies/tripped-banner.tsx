import { Banner } from '../../components/banner.tsx'
import { To } from '../../components/link.tsx'
import { ExactTime } from '../../components/relative-time.tsx'
import { useTripped } from './policies.ts'

/** On every page, until the mode of each policy whose breaker tripped is set. */
export function TrippedBanner() {
  const tripped = useTripped()
  return tripped.map(({ id, name, tripped_at }) => (
    <Banner
      key={id}
      link={
        <To to="/policies/$id" params={{ id: String(id) }} aria-label={`Review the policy ${name}`}>
          Review the policy
        </To>
      }
    >
      <strong>The breaker of the policy “{name}” tripped</strong> on{' '}
      {tripped_at && <ExactTime at={tripped_at} />}. The policy only records firings.
    </Banner>
  ))
}
