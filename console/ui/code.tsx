import { defaultKeymap, history, historyKeymap } from '@codemirror/commands'
import { json } from '@codemirror/lang-json'
import { bracketMatching, foldGutter, HighlightStyle, syntaxHighlighting } from '@codemirror/language'
import { Annotation, EditorState, type Extension } from '@codemirror/state'
import { drawSelection, EditorView, keymap, lineNumbers } from '@codemirror/view'
import { tags } from '@lezer/highlight'
import { useEffect, useRef } from 'preact/hooks'
import { marks, showMarks, type Mark } from './marks.ts'

/** What a page does to the text beside typing. */
export interface CodeHandle {
  /** Replaces the `length` characters before the cursor, and focuses the text. */
  insert(text: string, length: number): void
}

interface CodeProps {
  readonly label: string
  readonly value: string
  /** Called with the text after each change. Without it the text is read-only. */
  readonly onChange?: (value: string) => void
  /** More extensions, such as completion. They are read once. */
  readonly extensions?: readonly Extension[]
  readonly isJson?: boolean
  /** Parts to underline as wrong. */
  readonly wrong?: readonly Mark[]
  /** Called with the text before the cursor when the cursor moves. */
  readonly onCursor?: (before: string) => void
  /** Called once the editor exists. */
  readonly onReady?: (handle: CodeHandle) => void
}

const colors = HighlightStyle.define([
  { tag: tags.propertyName, color: 'var(--accent)' },
  { tag: tags.string, color: 'var(--good)' },
  { tag: [tags.number, tags.bool, tags.null, tags.keyword], color: 'var(--warn)' },
  { tag: [tags.punctuation, tags.comment], color: 'var(--muted)' },
])

const look = EditorView.theme({
  '&': { maxHeight: '70vh', minHeight: '74px', backgroundColor: 'var(--surface)', color: 'var(--text)' },
  '&.cm-focused': { outline: 'none' },
  '.cm-wrong': { textDecoration: 'underline wavy var(--bad)', textUnderlineOffset: '3px' },
  '.cm-scroller': { fontFamily: 'var(--mono)', fontSize: '12.5px', lineHeight: '1.55' },
  '.cm-gutters': { backgroundColor: 'var(--raised)', color: 'var(--muted)', border: 'none' },
  '.cm-cursor': { borderLeftColor: 'var(--text)' },
  '&.cm-focused .cm-selectionBackground, .cm-selectionBackground': { backgroundColor: 'var(--accent-soft) !important' },
})

/** Marks a change that did not come from the editor. */
const fromOutside = Annotation.define<boolean>()

/** Text with line numbers and colors, to read or to edit. */
export function Code({ label, value, onChange, extensions = [], isJson = true, wrong, onCursor, onReady }: CodeProps) {
  const host = useRef<HTMLDivElement>(null)
  const editor = useRef<EditorView>(null)
  const changed = useRef(onChange)
  changed.current = onChange
  // Texts that were reported and are not the `value` yet. While a user types quickly, `value` is an older text of the editor.
  const reported = useRef<string[]>([])
  const moved = useRef(onCursor)
  moved.current = onCursor
  useEffect(() => {
    if (host.current === null) return undefined
    // In a shadow root the editor adopts its style sheets; in the document it would add style elements, which the Content-Security-Policy rejects.
    const root = host.current.shadowRoot ?? host.current.attachShadow({ mode: 'open' })
    const view = new EditorView({
      parent: root,
      root,
      doc: value,
      extensions: [
        lineNumbers(),
        drawSelection(),
        bracketMatching(),
        syntaxHighlighting(colors),
        look,
        EditorView.lineWrapping,
        EditorView.contentAttributes.of({ 'aria-label': label, tabindex: '0' }),
        keymap.of([...defaultKeymap, ...historyKeymap]),
        ...(isJson ? [json(), foldGutter()] : []),
        ...(onChange === undefined ? [EditorState.readOnly.of(true)] : [history()]),
        EditorView.updateListener.of(({ docChanged, transactions, state }) => {
          if (!docChanged || transactions.some((transaction) => transaction.annotation(fromOutside) === true)) return
          const text = state.doc.toString()
          reported.current.push(text)
          changed.current?.(text)
        }),
        EditorView.updateListener.of(({ docChanged, selectionSet, state }) => {
          if (docChanged || selectionSet) moved.current?.(state.sliceDoc(0, state.selection.main.head))
        }),
        marks,
        ...extensions,
      ],
    })
    editor.current = view
    onReady?.({
      insert: (text, length) => {
        const { head } = view.state.selection.main
        const from = Math.max(0, head - length)
        view.dispatch({ changes: { from, to: head, insert: text }, selection: { anchor: from + text.length } })
        view.focus()
      },
    })
    return () => view.destroy()
  }, [])
  useEffect(() => {
    const view = editor.current
    const index = reported.current.indexOf(value)
    if (index !== -1) return void reported.current.splice(0, index + 1)
    reported.current = []
    if (view !== null && view.state.doc.toString() !== value)
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: value }, annotations: fromOutside.of(true) })
  }, [value])
  useEffect(() => {
    if (editor.current !== null && wrong !== undefined) showMarks(editor.current, wrong)
  }, [wrong])
  return <div class="code" ref={host} />
}
