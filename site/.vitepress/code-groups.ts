import type { MarkdownRenderer } from 'vitepress'

const rule = 'container_code-group_open'

/**
 * VitePress gives the tabs of code groups random ids, which would make each build different. The ids become the position
 * of the group in its page and of the tab in its group.
 */
export function fixedGroupIds(markdown: MarkdownRenderer): void {
  const original = markdown.renderer.rules[rule]
  if (!original) throw new Error(`VitePress has no rule ${rule} any more.`)
  markdown.renderer.rules[rule] = (tokens, index, ...rest) => {
    const tabs: string[] = []
    const numberOf = (id: string): number => {
      if (!tabs.includes(id)) tabs.push(id)
      return tabs.indexOf(id)
    }
    return original(tokens, index, ...rest)
      .replaceAll(/ name="group-[\w-]+"/g, ` name="group-${index}"`)
      .replaceAll(/ (id|for)="tab-([\w-]+)"/g, (_, name, id) => ` ${name}="tab-${index}-${numberOf(id)}"`)
  }
}
