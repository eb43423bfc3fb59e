import { defaultKeymap, history, historyKeymap } from '@codemirror/commands'
import { json } from '@codemirror/lang-json'
import { bracketMatching, foldGutter, HighlightStyle, syntaxHighlighting } from '@codemirror/language'
import { EditorState, type Extension } from '@codemirror/state'
import { drawSelection, EditorView, keymap, lineNumbers } from '@codemirror/view'
import { tags } from '@lezer/highlight'
import { useEffect, useRef } from 'preact/hooks'

interface CodeProps {
  readonly label: string
  readonly value: string
  /** Called with the text after each change. Without it the text is read-only. */
  readonly onChange?: (value: string) => void
  /** More extensions, such as completion. They are read once. */
  readonly extensions?: readonly Extension[]
  readonly isJson?: boolean
}

const colors = HighlightStyle.define([
  { tag: tags.propertyName, color: 'var(--accent)' },
  { tag: tags.string, color: 'var(--good)' },
  { tag: [tags.number, tags.bool, tags.null, tags.keyword], color: 'var(--warn)' },
  { tag: [tags.punctuation, tags.comment], color: 'var(--muted)' },
])

const look = EditorView.theme({
  '.cm-scroller': { fontFamily: 'var(--mono)', fontSize: '12.5px', lineHeight: '1.55' },
  '.cm-gutters': { backgroundColor: 'var(--raised)', color: 'var(--muted)', border: 'none' },
  '.cm-cursor': { borderLeftColor: 'var(--text)' },
  '&.cm-focused .cm-selectionBackground, .cm-selectionBackground': { backgroundColor: 'var(--accent-soft) !important' },
})

/** Text with line numbers and colors, to read or to edit. */
export function Code({ label, value, onChange, extensions = [], isJson = true }: CodeProps) {
  const host = useRef<HTMLDivElement>(null)
  const editor = useRef<EditorView>(null)
  const changed = useRef(onChange)
  changed.current = onChange
  useEffect(() => {
    if (host.current === null) return undefined
    const view = new EditorView({
      parent: host.current,
      doc: value,
      extensions: [
        lineNumbers(),
        drawSelection(),
        bracketMatching(),
        syntaxHighlighting(colors),
        look,
        EditorView.lineWrapping,
        EditorView.contentAttributes.of({ 'aria-label': label }),
        keymap.of([...defaultKeymap, ...historyKeymap]),
        ...(isJson ? [json(), foldGutter()] : []),
        ...(onChange === undefined ? [EditorState.readOnly.of(true)] : [history()]),
        EditorView.updateListener.of(({ docChanged, state }) => void (docChanged && changed.current?.(state.doc.toString()))),
        ...extensions,
      ],
    })
    editor.current = view
    return () => view.destroy()
  }, [])
  useEffect(() => {
    const view = editor.current
    if (view !== null && view.state.doc.toString() !== value) view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: value } })
  }, [value])
  return <div class="code" ref={host} />
}
