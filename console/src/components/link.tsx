import { Anchor, type AnchorProps } from '@mantine/core'
import { createLink, type LinkComponent } from '@tanstack/react-router'
import type { AnchorHTMLAttributes, Ref } from 'react'

interface Props extends AnchorProps, Omit<AnchorHTMLAttributes<HTMLAnchorElement>, keyof AnchorProps> {
  ref?: Ref<HTMLAnchorElement>
}

const Styled = createLink((props: Props) => <Anchor {...props} />)

/** A link to another page of the console. */
export const To: LinkComponent<(props: Props) => React.ReactElement> = (props) => <Styled {...props} />
