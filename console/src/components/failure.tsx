import { Alert } from '@mantine/core'
import { ApiError } from '../api/api-error.ts'
import { Sentence } from './sentence.tsx'

/** Why a mutation failed, and whether it may have been made all the same. */
export function Failure({ of: failure }: { of: Error | null | undefined }) {
  if (!failure) return null
  const isCertain = failure instanceof ApiError && failure.isCertain
  return (
    <Alert
      color="red"
      role="alert"
      title={isCertain ? 'No changes were made' : 'It is unknown whether the change was made'}
    >
      <Sentence text={failure.message} />
    </Alert>
  )
}
