import { useState } from 'react'

/** The token in the link that opened the page. The fragment of a URL is never sent to the server. */
export const useLinkToken = (): string => useState(() => window.location.hash.slice(1))[0]
