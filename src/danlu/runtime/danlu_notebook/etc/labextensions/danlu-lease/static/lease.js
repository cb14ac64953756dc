// In JupyterLab: says when this notebook is stopped, and puts that off with one click.
//
// JupyterLab takes this file as a module of its own kind (a container of module federation); it is
// written as it is shipped, and nothing builds it. What it shows comes from the proxy in front of
// Lab, which alone knows when the notebook ends: /.danlu/lease and /.danlu/extend.
(() => {
  "use strict";
  const NAME = "danlu-lease";
  const LOOK_MS = 10_000;
  let shared = {};

  const module = async name => (await Object.values(shared[name])[0].get())();

  class Lease {
    constructor(notification, language) {
      this.notification = notification;
      this.headers = { Accept: "application/json" };
      // Who has chosen no language in Lab is answered in the browser's.
      if (language && language !== "default")
        this.headers["Accept-Language"] = language.replace("_", "-");
      this.shown = "";
      this.warned = 0;
      this.known = null;
    }

    async ask(path, method) {
      const answer = await fetch(path, { method, headers: this.headers, cache: "no-store" });
      const told = answer.headers.get("content-type")?.startsWith("application/json");
      return { ok: answer.ok, told: told ? await answer.json() : {} };
    }

    async look() {
      try {
        const { ok, told } = await this.ask("/.danlu/lease", "GET");
        if (ok) this.show(told);
        else this.hide();
      } catch {
        // The server is away for a moment, or the machine has slept.
      }
      return this.known;
    }

    show(told) {
      this.known = told;
      if (!told.warning) {
        this.hide();
      } else if (this.shown && told.warned === this.warned) {
        this.notification.update({ id: this.shown, message: told.warning });
      } else {
        this.hide();
        const extend = { label: told.label, displayType: "accent", callback: () => this.extend() };
        const actions = told.extensible ? [extend] : [];
        this.shown = this.notification.warning(told.warning, { autoClose: false, actions });
      }
      this.warned = told.warned;
    }

    hide() {
      if (this.shown) this.notification.dismiss(this.shown);
      this.shown = "";
      this.warned = 0;
    }

    async extend() {
      try {
        const { ok, told } = await this.ask("/.danlu/extend", "POST");
        if (ok) {
          this.show(told);
          this.notification.success(told.done, { autoClose: 8_000 });
        } else {
          this.notification.error(told.error_msg || "", { autoClose: false });
        }
      } catch (problem) {
        this.notification.error(String(problem), { autoClose: false });
      }
    }
  }

  const plugin = ({ Notification, ICommandPalette }, { ITranslator }) => ({
    id: `${NAME}:plugin`,
    description: "Says when the notebook is stopped, and puts that off",
    autoStart: true,
    requires: [ITranslator],
    optional: [ICommandPalette],
    activate: async (app, translator, palette) => {
      const lease = new Lease(Notification, translator.languageCode);
      const told = await lease.look();
      setInterval(() => lease.look(), LOOK_MS);
      const command = "danlu:extend";
      app.commands.addCommand(command, {
        label: told ? told.command : command,
        execute: () => lease.extend()
      });
      if (palette) palette.addItem({ command, category: "Danlu" });
    }
  });

  const found = async () => plugin(
    await module("@jupyterlab/apputils"), await module("@jupyterlab/translation")
  );
  (window._JUPYTERLAB ??= {})[NAME] = {
    init: scope => { shared = scope; },
    get: async () => {
      const made = await found();
      return () => ({ __esModule: true, default: made });
    }
  };
})();
