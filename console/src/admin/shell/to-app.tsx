import { useEffect } from 'react'
import { Loading } from '../../components/states.tsx'

/** A signed-in user who is not an administrator has only their own projects, which are at another address. */
export function ToApp() {
  useEffect(() => window.location.replace('/app/?via=console'), [])
  return <Loading />
}
