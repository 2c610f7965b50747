// The program that draws diagrams is large, so it is fetched when the reader comes near one. Until then this stands in for it.
{
  const program = document.currentScript.dataset.program;
  let settings, fetched;
  const fetchProgram = () => fetched ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = program;
    script.onload = () => {
      mermaid.initialize(settings);
      resolve(mermaid);
    };
    script.onerror = reject;
    document.head.append(script);
  });
  const near = element => new Promise(resolve => {
    new IntersectionObserver((entries, watch) => {
      if (!entries.some(one => one.isIntersecting)) return;
      watch.disconnect();
      resolve();
    }, {rootMargin: "600px"}).observe(element);
  });
  window.mermaid = {
    initialize(given) {
      settings = given;
    },
    async render(name, text) {
      await near([...document.querySelectorAll("pre.mermaid")].find(one => one.textContent === text));
      return (await fetchProgram()).render(name, text);
    },
  };
}
