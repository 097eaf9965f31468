import { Alert } from '@mantine/core'
import { ApiError } from '../api/api-error.ts'
import { Sentence } from '../components/sentence.tsx'

/** The name of the field that an error is about: a message of the API begins with it, such as `"email" must be …`. */
const fieldIn = (error: Error | null): string | undefined =>
  error instanceof ApiError ? /^"(\w+)" /.exec(error.message)?.[1] : undefined

/** The error of one field, shown below the field. */
export function fieldError(error: Error | null, field: string, label: string): string | undefined {
  return error && fieldIn(error) === field ? error.message.replace(`"${field}"`, label) : undefined
}

/** An error that is not about one of the fields. */
export function FormError({ error, fields = [] }: { error: Error | null; fields?: readonly string[] }) {
  const field = fieldIn(error)
  if (!error || (field !== undefined && fields.includes(field))) return null
  return (
    <Alert color="red" role="alert">
      <Sentence text={error.message} />
    </Alert>
  )
}
