import { useData } from 'vitepress'
import { defineComponent, h, onMounted, ref, watch } from 'vue'

let count = 0

/** A Mermaid diagram, drawn in the browser with the colors of the page. `code` is its source, URL-encoded. */
export const Diagram = defineComponent({
  props: { code: { type: String, required: true } },
  setup({ code }) {
    const { isDark } = useData()
    const svg = ref('')
    const draw = async (): Promise<void> => {
      const { default: mermaid } = await import('mermaid')
      mermaid.initialize({ startOnLoad: false, theme: isDark.value ? 'dark' : 'neutral', fontFamily: 'inherit' })
      count += 1
      svg.value = (await mermaid.render(`diagram-${count}`, decodeURIComponent(code))).svg
    }
    onMounted(draw)
    watch(isDark, draw)
    return () => h('div', { class: 'diagram', innerHTML: svg.value })
  },
})
