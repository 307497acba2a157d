//! The congestion control of one connection, together with its window; chosen from the list of all controls.

/// Declares the enum of all controls, and forwards each hook to the connection's control.
macro_rules! controls {
    ($($name:ident($control:ty),)+) => {
        /// The congestion control of one connection, and the window it sets. The hooks are those of [`Control`].
        #[derive(Debug)]
        pub(crate) struct Controller {
            window: Window,
            rules: Rules,
        }

        // There is one per connection, and every acknowledgement uses it, so it is not boxed, however large the largest
        // variant is.
        #[allow(clippy::large_enum_variant)]
        #[derive(Debug)]
        enum Rules {
            $($name($control),)+
        }

        impl Controller {
            /// For a connection with these settings.
            pub(crate) fn new(settings: &Settings) -> Self {
                let rules = match settings.congestion {
                    $(bufferscope_scenario::Congestion::$name => Rules::$name(<$control>::new(settings)),)+
                };
                let mut controller = Self { window: Window::new(settings.initial_window_packets), rules };
                if !controller.governs() {
                    controller.window.ssthresh = settings.ssthresh_packets;
                }
                controller
            }

            /// Reno takes over, before the connection is established. The window stays.
            pub(crate) fn fall_back_to_reno(&mut self) {
                self.rules = Rules::Reno(controls::reno::Reno);
            }

            /// The window.
            #[inline]
            pub(crate) fn window(&self) -> &Window {
                &self.window
            }

            /// The window, for the sender to change: during recovery, and when it undoes a reduction.
            #[inline]
            pub(crate) fn window_mut(&mut self) -> &mut Window {
                &mut self.window
            }

            /// [`Control::GOVERNS`]
            #[inline]
            pub(crate) fn governs(&self) -> bool {
                match &self.rules {
                    $(Rules::$name(_) => <$control>::GOVERNS,)+
                }
            }

            /// [`Control::min_tso_segs`]
            pub(crate) fn min_tso_segs(&self) -> Option<u32> {
                match &self.rules {
                    $(Rules::$name(_) => <$control>::min_tso_segs(self.window.pacing_bytes_per_s),)+
                }
            }

            /// [`Control::ECN`]
            pub(crate) fn ecn(&self) -> EcnUse {
                match &self.rules {
                    $(Rules::$name(_) => <$control>::ECN,)+
                }
            }

            /// [`Control::BUFFERED_WINDOWS`]
            pub(crate) fn buffered_windows(&self) -> u64 {
                match &self.rules {
                    $(Rules::$name(_) => <$control>::BUFFERED_WINDOWS,)+
                }
            }

            /// [`Control::WATCHES_LOSSES`]
            pub(crate) fn watches_losses(&self) -> bool {
                match &self.rules {
                    $(Rules::$name(_) => <$control>::WATCHES_LOSSES,)+
                }
            }

            pub(crate) fn init(&mut self, context: &Context) {
                match &mut self.rules {
                    $(Rules::$name(control) => control.init(&mut self.window, context),)+
                }
            }

            #[inline]
            pub(crate) fn on_acked(&mut self, context: &Context, acked: &Acked) {
                match &mut self.rules {
                    $(Rules::$name(control) => control.on_acked(&mut self.window, context, acked),)+
                }
            }

            #[inline]
            pub(crate) fn on_ack(&mut self, context: &Context, ack: &Ack) {
                match &mut self.rules {
                    $(Rules::$name(control) => control.on_ack(&mut self.window, context, ack),)+
                }
            }

            pub(crate) fn ssthresh(&mut self, context: &Context) -> u32 {
                match &mut self.rules {
                    $(Rules::$name(control) => control.ssthresh(&mut self.window, context),)+
                }
            }

            pub(crate) fn undo(&mut self, context: &Context) -> u32 {
                match &mut self.rules {
                    $(Rules::$name(control) => control.undo(&mut self.window, context),)+
                }
            }

            pub(crate) fn on_state(&mut self, context: &Context, state: State) {
                match &mut self.rules {
                    $(Rules::$name(control) => control.on_state(&mut self.window, context, state),)+
                }
            }

            pub(crate) fn on_event(&mut self, context: &Context, event: Event) {
                match &mut self.rules {
                    $(Rules::$name(control) => control.on_event(&mut self.window, context, event),)+
                }
            }

            /// [`Control::report`]
            pub(crate) fn report(&self) -> Report {
                match &self.rules {
                    $(Rules::$name(control) => control.report(),)+
                }
            }

            pub(crate) fn on_lost(&mut self, context: &Context, lost: &LostPacket) {
                match &mut self.rules {
                    $(Rules::$name(control) => control.on_lost(&mut self.window, context, lost),)+
                }
            }
        }
    };
}
