/** A line of a `console` block. */
interface ConsoleLine {
  /** Part of a command, not of an output. */
  readonly isCommand: boolean
  /** Begins with `$ `. */
  readonly hasPrompt: boolean
}

/** Tells commands from their output. A command goes on after a backslash, and to the end of a here-document. */
export function findCommands(text: string): readonly ConsoleLine[] {
  /** The line that ends the here-document, or a backslash after one. */
  let until: string | undefined
  return text.split('\n').map((line) => {
    const hasPrompt = until === undefined && line.startsWith('$ ')
    const isCommand = hasPrompt || until !== undefined
    if (hasPrompt || until === '\\') until = line.endsWith('\\') ? '\\' : /<<'?(\w+)'?/.exec(line)?.[1]
    else if (line === until) until = undefined
    return { isCommand, hasPrompt }
  })
}

/** An element of highlighted code, as Shiki makes it. */
interface CodeNode {
  readonly type: string
  readonly tagName?: string
  readonly properties?: Record<string, unknown>
  value?: string
  children?: CodeNode[]
}

/** Class of what the button of a block does not copy. */
const NOT_COPIED = 'vp-copy-ignore'

const span = (classes: string, children: CodeNode[]): CodeNode => ({ type: 'element', tagName: 'span', properties: { class: classes }, children })

/** Makes the button of a `console` block copy its commands: prompts and output, with the line feeds around them, are shown only. */
export function markOutput(code: CodeNode, text: string): void {
  const lines = findCommands(text.replace(/\n$/, ''))
  const lastCommand = lines.findLastIndex(({ isCommand }) => isCommand)
  let index = -1
  code.children = (code.children ?? []).map((node) => {
    if (node.type === 'element') index += 1
    const { isCommand = false, hasPrompt = false } = lines[index] ?? {}
    if (node.type !== 'element') return isCommand && index < lastCommand ? node : span(NOT_COPIED, [node])
    if (!isCommand) return span(NOT_COPIED, [node])
    if (hasPrompt) {
      removeStart(node, 2)
      node.children?.unshift(span(`${NOT_COPIED} prompt`, [{ type: 'text', value: '$ ' }]))
    }
    return node
  })
}

/** Removes the first characters of the text of an element. Returns how many are left to remove. */
function removeStart(node: CodeNode, count: number): number {
  if (node.value !== undefined) {
    const removed = Math.min(count, node.value.length)
    node.value = node.value.slice(removed)
    return count - removed
  }
  return (node.children ?? []).reduce((left, child) => (left === 0 ? 0 : removeStart(child, left)), count)
}
