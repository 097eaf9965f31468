import { useQuery } from '@tanstack/react-query'
import { useEffect } from 'react'
import { type AnswerOf, call } from '../api/client.ts'
import { nameProduct } from './page-head.tsx'

/** The installation, as the operator configured it. */
export const useInstallation = () =>
  useQuery({
    queryKey: ['installation'],
    queryFn: () => call('installation.show'),
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: Number.POSITIVE_INFINITY,
    meta: { skipRefetch: true },
  })

export type Branding = Pick<
  AnswerOf<'installation.show'>,
  'name' | 'logo_url' | 'color' | 'support_email' | 'support_url' | 'terms_url' | 'privacy_url'
>

const unbranded: Branding = {
  ...{ name: 'Postern', logo_url: null, color: null },
  ...{ support_email: null, support_url: null, terms_url: null, privacy_url: null },
}

/** How the operator presents the installation. Until it is known, and if it cannot be loaded, it is Postern. */
export const useBranding = (): Branding => useInstallation().data ?? unbranded

/** Names windows after the installation. */
export function useInstallationName(): void {
  const { name } = useBranding()
  useEffect(() => nameProduct(name), [name])
}
